// What is in the tarball, and what it does where there is no browser.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { featuresOf, shippedFeatures } from "../../scripts/lib/wasm-features.mjs";
import { exec, freshApplication, root } from "./support.mjs";

/** @type {Awaited<ReturnType<typeof freshApplication>>} */
let app;
before(async () => {
  app = await freshApplication();
});
after(() => app.remove());

test("the tarball holds what is used and nothing else", async () => {
  const { stdout } = await exec("tar", ["-tzf", app.tarball]);
  const files = stdout.trim().split("\n").map((file) => file.replace("package/", ""));
  assert.deepEqual(files.filter((file) => file.endsWith(".wasm")), ["dist/resubmit.wasm"]);
  for (const file of ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "package.json", "dist/index.js", "dist/index.d.ts"]) {
    assert.ok(files.includes(file), `${file} is missing`);
  }
  const stray = files.filter((file) => !/^(dist\/[\w-]+\.(js|d\.ts|wasm)|(README|ARCHITECTURE|CHANGELOG)\.md|LICENSE-(MIT|APACHE)|package\.json)$/.test(file));
  assert.deepEqual(stray, []);
});

test("the crate holds its sources and nothing else", async () => {
  const { stdout } = await exec("cargo", ["package", "--list", "--allow-dirty", "--offline"], { cwd: root });
  const files = stdout.trim().split("\n");
  for (const file of ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"]) {
    assert.ok(files.includes(file), `${file} is missing`);
  }
  const cargos = /^(\.cargo_vcs_info\.json|Cargo\.(lock|toml|toml\.orig))$/;
  const stray = files.filter((file) => !cargos.test(file) && !/^(src\/[\w/]+\.rs|(README|ARCHITECTURE|CHANGELOG)\.md|LICENSE-(MIT|APACHE))$/.test(file));
  assert.deepEqual(stray, []);
});

test("installing it runs nothing and brings nothing along", async () => {
  const manifest = JSON.parse(await readFile(join(app.installed, "package.json"), "utf8"));
  const scripts = Object.keys(manifest.scripts ?? {});
  // `prepack` runs for who packs, so that no tarball goes out without a build.
  assert.deepEqual(scripts.filter((name) => /^(pre|post)?(install|prepare|pack|publish)/.test(name)), ["prepack"]);
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.peerDependencies, undefined);
});

test("publint has nothing to say", async () => {
  const tarball = await readFile(app.tarball);
  const { messages, pkg } = await publint({
    pack: { tarball: tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.length) },
    level: "suggestion",
    strict: true,
  });
  assert.deepEqual(messages.map((message) => formatMessage(message, pkg)), []);
});

test("attw has nothing to say", async () => {
  const tarball = createPackageFromTarballData(new Uint8Array(await readFile(app.tarball)));
  const analysis = await checkPackage(tarball, { entrypoints: ["."] });
  assert.ok(analysis.types, "no types were found");
  // It is a module and nothing else: that `require` gets one is meant.
  assert.deepEqual(analysis.problems.filter(({ kind }) => kind !== "CJSResolvesToESM"), []);
});

test("the shipped module loads and names features that the oldest browsers have", async () => {
  const features = featuresOf(await readFile(join(app.installed, "dist", "resubmit.wasm")));
  assert.ok(features.length > 0, "no target_features section");
  assert.deepEqual(features.filter((name) => !shippedFeatures.has(name)), []);
});

// A wasm export that appears, goes or changes shape is meant, or is noticed here. (UPDATE=1 writes the new one.)
test("the module's exports are those of tests/package/glue.d.ts", async () => {
  const generated = (await readFile(join(root, "build", "resubmit.d.ts"), "utf8")).replace(/\/\*[^]*?\*\/\s*/g, "");
  const kept = join(root, "tests", "package", "glue.d.ts");
  if (process.env.UPDATE) await writeFile(kept, generated);
  assert.equal(generated, await readFile(kept, "utf8"));
});

test("the script makes no code out of strings", async () => {
  const script = await readFile(join(app.installed, "dist", "index.js"), "utf8");
  assert.doesNotMatch(script, /\beval\s*\(|\bFunction\s*\(/);
  // Service workers allow no import(), and a module that awaits at its top can't be loaded by one.
  assert.doesNotMatch(script, /\bimport\s*\(/);
});

test("the module's address stays an expression that bundlers know", async () => {
  const script = await readFile(join(app.installed, "dist", "index.js"), "utf8");
  assert.deepEqual(script.match(/new URL\([^)]*\)/g)?.filter((url) => url.includes(".wasm")), ['new URL("./resubmit.wasm",import.meta.url)']);
});

test("importing it under Node has no effect, and an outbox there is inert", async () => {
  const program = `
    const before = Reflect.ownKeys(globalThis);
    const { createOutbox } = await import("resubmit");
    const added = Reflect.ownKeys(globalThis).filter((key) => !before.includes(key));
    const handles = process.getActiveResourcesInfo().filter((kind) => /Timeout|Immediate|Message|Worker|TCP/.test(kind));
    createOutbox({ name: "orders" });
    console.log(JSON.stringify({ added, handles }));
  `;
  const { stdout, stderr } = await exec(process.execPath, ["--input-type=module", "--eval", program], { cwd: app.folder, timeout: 20_000 });
  assert.deepEqual(JSON.parse(stdout), { added: [], handles: [] });
  assert.equal(stderr, "");
});

test("the version is one and the same in both packages", async () => {
  const manifest = JSON.parse(await readFile(join(app.installed, "package.json"), "utf8"));
  const [, version] = /^version = "(.+)"$/m.exec(await readFile(join(root, "Cargo.toml"), "utf8")) ?? [];
  assert.equal(manifest.version, version);
});
