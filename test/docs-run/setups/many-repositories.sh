# A checkout with an instruction file that a person wrote, in the folder where the page starts.
git init --quiet
printf '# Shop\n\nAsk before you touch `billing/`.\n' >CLAUDE.md
git add --all
git commit --quiet --message "Start the shop"
cd ..
