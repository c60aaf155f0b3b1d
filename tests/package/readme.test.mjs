// The README's code, as it stands there: type-checked against the installed package, and run in a real browser. Its Rust is
// a doctest of the crate.
import assert from "node:assert/strict";
import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../www/server/server.mjs";
import { exec, root, stage } from "./support.mjs";

const readme = await readFile(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```(.*)\n([^]*?)^```$/gm)].map(([, language = "", code = ""]) => ({ language, code }));

/** The code of that language, in order. @param {RegExp} language */
const codeIn = (language) => blocks.filter((block) => language.test(block.language)).map(({ code }) => code);
const scripts = codeIn(/^(js|ts)$/);
const pages = codeIn(/^html$/);

const on = stage();

test("each block says what it is, and there is something to check", () => {
  assert.deepEqual(blocks.filter(({ language }) => !/^(js|ts|html|rust|sh|text)$/.test(language)), []);
  assert.equal(scripts.length, 3, "a script that was added needs a test that runs it");
  assert.equal(pages.length, 1, "a page that was added needs a test that opens it");
});

test("the scripts compile under strict", async () => {
  const inPages = pages.flatMap((page) => [...page.matchAll(/<script type="module">([^]*?)<\/script>/g)].map(([, code = ""]) => code));
  const all = [...scripts, ...inPages.map((code) => code.replace("/resubmit/index.js", "resubmit"))];
  await writeFile(join(on.app.folder, "page.d.ts"), globals);
  for (const [at, code] of all.entries()) await writeFile(join(on.app.folder, `block-${at}.ts`), code);
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    target: "es2022",
    lib: ["es2022", "dom", "dom.iterable"],
    module: "esnext",
    moduleResolution: "bundler",
    types: [],
  };
  await writeFile(join(on.app.folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const tsc = exec(join(root, "node_modules", ".bin", "tsc"), ["--project", on.app.folder]);
  await tsc.catch(({ stdout }) => assert.fail(stdout));
});

/** What the scripts take from the page around them. */
const globals = `declare const form: HTMLFormElement, text: string;
declare const session: { token(options: { fresh: boolean }): Promise<string | null> };
declare const outbox: import("resubmit").Outbox;
`;

const form = `<form id="form"><input name="item" value="tea"><button>Order</button></form>`;
const importMap = `<script type="importmap">{ "imports": { "resubmit": "/resubmit/index.js" } }</script>`;
/** A page on which the first script runs as it stands. */
const first = `<!doctype html><title>Order</title>
${importMap}
${form}<script type="module">${scripts[0]}</script>`;

test("the first example delivers a form once, and goes where the server says", async () => {
  const script = [{ type: "status", status: 503 }, { type: "commit-status", status: 502 }];
  const { url, server, end } = await submitFrom(first, script);
  try {
    const [order] = server.orders();
    assert.equal(url, `${server.url}/orders/${order?.id}`);
    assert.deepEqual(server.ledger().map(({ arrivals, orders }) => ({ arrivals, orders })), [{ arrivals: 3, orders: 1 }]);
  } finally {
    await end();
  }
});

test("the first example goes on where the server says nothing", async () => {
  const { url, server, end } = await submitFrom(first, [{ type: "commit-status", status: 204 }]);
  try {
    assert.equal(url, `${server.url}/thanks`);
    assert.equal(server.orders().length, 1);
  } finally {
    await end();
  }
});

test("the example of order sends one after the other", async () => {
  const page = `<!doctype html><title>Order</title>${importMap}<script type="module">
    import { createOutbox } from "resubmit";
    globalThis.outbox = createOutbox();
    globalThis.text = "dear sir";
  </script><script type="module">${scripts[1]}</script>`;
  const { server, end } = await open(page);
  try {
    await server.log.until((entries) => entries.filter(({ method, complete }) => method === "PUT" && complete).length === 2);
  } finally {
    await end();
  }
});

test("the example of sign-in asks for fresh credentials when the server refuses", async () => {
  const page = `<!doctype html><title>Account</title>${importMap}<script type="module">
    globalThis.session = { token: async ({ fresh }) => (fresh ? "fresh" : "stale") };
  </script><script type="module">${scripts[2]}; outbox.submit("/orders", { json: {} });</script>`;
  const { server, end } = await open(page, [], new Set(["fresh"]));
  try {
    await server.log.until(() => server.orders().length === 1);
    assert.deepEqual(server.log.entries().filter(({ method }) => method === "POST").map(({ headers }) => headers["authorization"]), ["Bearer stale", "Bearer fresh"]);
  } finally {
    await end();
  }
});

test("the example without a bundler delivers its order", async () => {
  const { server, page, end } = await open(`<!doctype html><title>Order</title>${pages[0]}`);
  try {
    await server.log.until((entries) => entries.some(({ method, complete }) => method === "POST" && complete));
    assert.equal(await page.title(), "Order");
    assert.equal(server.ledger().length, 1);
  } finally {
    await end();
  }
});

test("its links lead to what both packages ship", async () => {
  const links = [...readme.matchAll(/\]\(([^)]*)\)/g)].map(([, target = ""]) => target);
  assert.ok(links.length > 0, "there are links");
  const slug = (/** @type {string} */ heading) => heading.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
  const { stdout: crate } = await exec("cargo", ["package", "--list", "--allow-dirty", "--offline"], { cwd: root });
  for (const link of links.filter((target) => !/^https?:/.test(target))) {
    const [file, anchor] = link.split("#");
    if (file) assert.ok(crate.split("\n").includes(file), `${file} is in the crate`);
    if (file) await access(join(on.app.installed, file));
    const text = file ? await readFile(join(root, file), "utf8") : readme;
    const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => slug(heading));
    if (anchor) assert.ok(headings.includes(anchor), `${link} names a heading`);
  }
});

/** @param {string} html @param {any[]} [script] of faults @param {Set<string> | null} [tokens] that the server asks for */
async function open(html, script = [], tokens = null) {
  const mounts = [{ prefix: "/resubmit/", dir: join(on.app.installed, "dist") }];
  const server = await createServer({ mounts });
  server.access.tokens = tokens;
  server.faults.put({ route: "/orders", script, then: "ok" });
  const page = await on.context.newPage();
  const body = { contentType: "text/html", body: html };
  await page.route(`${server.url}/`, (route) => route.fulfill(body));
  await page.route(`${server.url}/thanks`, (route) => route.fulfill({ ...body, body: "Thank you" }));
  await page.goto(`${server.url}/`);
  const end = async () => {
    await page.close();
    await server.close();
  };
  return { page, server, end };
}

/** Submits the page's form, and says where that led. @param {string} html @param {any[]} script of faults */
async function submitFrom(html, script) {
  const opened = await open(html, script);
  await opened.page.click("button");
  await opened.page.waitForURL((url) => url.pathname !== "/", { timeout: 20_000 });
  return { ...opened, url: opened.page.url() };
}
