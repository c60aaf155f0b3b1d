// Which extensions of WebAssembly a module uses, as its toolchain declares them.

/**
 * The extensions that we ship, by the name in the module and by wasm-opt's flag. All are in Chrome 97, Firefox 102 and
 * Safari 16.4, the oldest browsers of the contract. wasm-opt gets these by name: with --all-features it writes modules that
 * no browser takes.
 */
export const shippedFeatures = new Map([
  ["bulk-memory", "--enable-bulk-memory"],
  ["bulk-memory-opt", "--enable-bulk-memory-opt"],
  ["call-indirect-overlong", "--enable-call-indirect-overlong"],
  ["multivalue", "--enable-multivalue"],
  ["mutable-globals", "--enable-mutable-globals"],
  ["nontrapping-fptoint", "--enable-nontrapping-float-to-int"],
  ["reference-types", "--enable-reference-types"],
  ["sign-ext", "--enable-sign-ext"],
]);

/**
 * The names in a module's `target_features` section; throws what `WebAssembly.Module` throws on a module it refuses.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {string[]} sorted; empty when the section is missing
 */
export function featuresOf(bytes) {
  const [section] = WebAssembly.Module.customSections(new WebAssembly.Module(bytes), "target_features");
  if (!section) return [];
  const view = new Uint8Array(section);
  let at = 0;
  // LEB128, though every number here is below 128 in practice.
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = view[at++];
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const names = [];
  for (let left = number(); left > 0; left--) {
    at++; // the prefix: "+", used
    const length = number();
    names.push(new TextDecoder().decode(view.subarray(at, (at += length))));
  }
  return names.sort();
}
