/**
 * The parts of a module's source that the page shows: what you read is what runs.
 * @param {string} source
 */
export function shown(source) {
  return [...source.matchAll(/\/\/ <shown>\n([^]*?)\n *\/\/ <\/shown>/g)].map(([, part = ""]) => unindented(part)).join("\n\n");
}

/** @param {string} part */
function unindented(part) {
  const indent = /^ */.exec(part)?.[0].length ?? 0;
  return part
    .split("\n")
    .map((line) => line.slice(indent))
    .join("\n");
}
