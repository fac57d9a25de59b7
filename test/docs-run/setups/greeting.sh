# A project with the plan of the page, a check, and an agent whose first work is wrong.
cat > test.sh <<'END'
grep -q world src/greeting.txt && echo ok && exit 0
echo "src/greeting.txt does not greet the world"
exit 1
END
cat > agent.sh <<'END'
#!/bin/sh
mkdir -p src
if [ -e src/greeting.txt ]; then echo "Hello, world" > src/greeting.txt; else echo "Hello" > src/greeting.txt; fi
echo "Done: src/greeting.txt greets the world."
END
chmod +x agent.sh
git init --quiet
git add --all
git commit --quiet --message Start
