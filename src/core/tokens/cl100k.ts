/** The build replaces this module by its value, so that the package ships two strings and not gpt-tokenizer. */
import tokens from "gpt-tokenizer/bpeRanks/cl100k_base";
import { type PackedText, packText } from "./packed-tokens.ts";

export const cl100kTokens: PackedText = packText(tokens);
