export { renderBillPage } from "./bill/bill-page.ts";
export { checkPageTarget, writePage } from "./page/html-page.ts";
export { renderPage } from "./replay/render-page.ts";
