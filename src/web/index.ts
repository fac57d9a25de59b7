export { renderBillPage } from "./bill-page.ts";
export { checkPageTarget, writePage } from "./html-page.ts";
export { renderPage } from "./replay-page.ts";
