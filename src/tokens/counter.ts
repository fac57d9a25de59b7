/** A named function from text to tokens. Counting is synchronous; whatever had to be loaded was loaded when it was made. */
export interface Counter {
  readonly name: string;
  count(text: string): number;
}
