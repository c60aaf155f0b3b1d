// Short names between the glue and the module: wasm-bindgen's are long, end in a hash that does not compress, and stand in both.
import { Failure } from "./failure.mjs";

/** wasm-opt's pass that gives the names, and prints which became which. */
export const shortNames = "--minify-imports-and-exports-and-modules";

/**
 * The glue with the names that the module has by now. It imports from one object and exports through `wasm`.
 * @param {string} glue as wasm-bindgen wrote it
 * @param {string} printed by wasm-opt
 */
export function withShortNames(glue, printed) {
  /** @type {{ imports: [module: string, name: string, short: string][], exports: [name: string, short: string][] }} */
  const { imports, exports } = JSON.parse(printed);
  const shortExport = new Map(exports);
  const module = imports[0]?.[0];
  glue = replaced(glue, `"${module}": import0`, '"a": import0');
  for (const [, name, short] of imports) glue = replaced(glue, `        ${name}: function`, `        ${short}: function`);
  return glue.replace(/\bwasm\.(\w+)/g, (_, name) => `wasm.${shortExport.get(name) ?? unknown(name)}`);
}

/**
 * @param {string} text
 * @param {string} from
 * @param {string} to
 */
function replaced(text, from, to) {
  const [before, after, ...more] = text.split(from);
  return before === undefined || after === undefined || more.length > 0 ? unknown(from) : before + to + after;
}

/** @param {string} name @returns {never} */
function unknown(name) {
  throw new Failure(`wasm-bindgen and wasm-opt do not agree about ${name.trim()}.`, "Did one of them change how it writes names?");
}
