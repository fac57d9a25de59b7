# A small project in git, in the page's directory.
git init --quiet
mkdir -p src
printf '# Shop\n\nSells tea.\n' >README.md
printf '{ "name": "shop", "type": "module", "scripts": { "test": "node --test" } }\n' >package.json
printf 'export function total(prices) {\n  return prices.reduce((sum, price) => sum + price, 0);\n}\n' >src/total.js
git add --all
git commit --quiet --message "Start the shop"
