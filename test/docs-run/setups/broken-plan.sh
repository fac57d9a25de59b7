# The plan with five mistakes, in the folder broken.
cp -R plan broken
sed -i.bak 's/^depends_on.*/depends_on = ["server", "stroe"]/' broken/guide.md
sed -i.bak 's/^depends_on.*/depends_on = ["store", "contract", "guide"]/' broken/server.md
sed -i.bak '/^title/d' broken/model.md
sed -i.bak 's/^max_workers/max_worker/' broken/nebula.toml
sed -i.bak 's/^scope.*/scope = ["src\/store\/link.ts"]/' broken/contract.md
rm broken/*.bak
