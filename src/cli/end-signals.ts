/** Takes the signals with which clients end a server. On an interrupt, too, it ends in good order: the frame would exit at once. */
export function takeEndSignals(end: (signal: NodeJS.Signals) => void): void {
  process.removeAllListeners("SIGINT");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end(signal));
}
