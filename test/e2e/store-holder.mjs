/** Takes the write lock of a store and keeps it: for tests of what others do meanwhile. */
import Database from "libsql";

const database = new Database(process.argv[2]);
database.exec("BEGIN IMMEDIATE");
process.stdout.write("held\n");
setInterval(() => {}, 1_000);
