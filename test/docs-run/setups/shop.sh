# A small TypeScript project in git, in the page's directory.
mkdir -p src/cart test
git init --quiet
printf '{ "name": "shop", "type": "module", "scripts": { "test": "node --test" } }\n' >package.json
printf '{ "lockfileVersion": 3 }\n' >package-lock.json
printf '{ "compilerOptions": { "strict": true } }\n' >tsconfig.json
printf '# Shop\n\nOrders are never deleted: cancel them.\n\nPrices are whole cents.\n\nAsk before you touch `billing/`.\n' >AGENTS.md
printf '@AGENTS.md\n' >CLAUDE.md
for file in src/cart/add.ts src/cart/total.ts src/order.ts src/price.ts test/cart.test.ts test/order.test.ts; do echo "export {};" >$file; done
git add --all
git commit --quiet --message "Start the shop"
