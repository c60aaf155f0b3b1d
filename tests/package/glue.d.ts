export class Core {
    free(): void;
    [Symbol.dispose](): void;
    acknowledge(key: string, owner?: string | null): Promise<any>;
    cancel(key: string, owner?: string | null): Promise<any>;
    clear(owner: string): Promise<any>;
    close(): void;
    discard(key: string): Promise<any>;
    follow(key: string, joins: Function): Promise<any>;
    intents(): Array<any>;
    constructor(options: any, hooks: any, listener: Function);
    ready(): Promise<any>;
    resume(): void;
    retryAll(): Promise<any>;
    retry(key: string, may_repeat: boolean): Promise<any>;
    setOwner(owner?: string | null): Promise<any>;
    show(): void;
    submit(key: string, what: any, options: any, joins: Function): Promise<any>;
    unreadable(): number;
}

export class Loop {
    free(): void;
    [Symbol.dispose](): void;
    abort(): void;
    constructor(send: Function, key: string | null | undefined, policy: any);
    outcome(): Promise<any>;
}

export function __wbg_reset_state(): void;

export function on_panic(callback: Function): void;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_core_free: (a: number, b: number) => void;
    readonly __wbg_loop_free: (a: number, b: number) => void;
    readonly core_acknowledge: (a: number, b: number, c: number, d: number, e: number) => [number, number, number];
    readonly core_cancel: (a: number, b: number, c: number, d: number, e: number) => [number, number, number];
    readonly core_clear: (a: number, b: number, c: number) => any;
    readonly core_close: (a: number) => void;
    readonly core_discard: (a: number, b: number, c: number) => [number, number, number];
    readonly core_follow: (a: number, b: number, c: number, d: any) => [number, number, number];
    readonly core_intents: (a: number) => any;
    readonly core_new: (a: any, b: any, c: any) => [number, number, number];
    readonly core_ready: (a: number) => any;
    readonly core_resume: (a: number) => void;
    readonly core_retry: (a: number, b: number, c: number, d: number) => [number, number, number];
    readonly core_retryAll: (a: number) => any;
    readonly core_setOwner: (a: number, b: number, c: number) => any;
    readonly core_show: (a: number) => void;
    readonly core_submit: (a: number, b: number, c: number, d: any, e: any, f: any) => [number, number, number];
    readonly core_unreadable: (a: number) => number;
    readonly loop_abort: (a: number) => void;
    readonly loop_new: (a: any, b: number, c: number, d: any) => [number, number, number];
    readonly loop_outcome: (a: number) => any;
    readonly on_panic: (a: any) => void;
    readonly wasm_bindgen__convert__closures_____invoke__h532eb792e0c31acf: (a: number, b: number, c: any) => [number, number];
    readonly wasm_bindgen__convert__closures_____invoke__h619293847f4c0093: (a: number, b: number, c: any, d: any) => void;
    readonly wasm_bindgen__convert__closures_____invoke__h2a2d3220ba36c4da: (a: number, b: number, c: any) => void;
    readonly wasm_bindgen__convert__closures_____invoke__h2a2d3220ba36c4da_23: (a: number, b: number, c: any) => void;
    readonly wasm_bindgen__convert__closures_____invoke__h4ce8dc46799e10ff: (a: number, b: number) => any;
    readonly wasm_bindgen__convert__closures_____invoke__h08c8921c9066c1d5: (a: number, b: number) => void;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __wbindgen_destroy_closure: (a: number, b: number) => void;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

export default function __wbg_init (module_or_path: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
