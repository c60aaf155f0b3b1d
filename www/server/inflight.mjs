// Requests that are made to wait: delays that a reset can end, and sockets that never get an answer.

/** @import { Socket } from "node:net" */

/** Thrown out of a delay that a reset or the end of the server cut short. */
export class Ended extends Error {
  name = "Ended";
}

/** All waiting requests of one server. */
export class Inflight {
  #abort = new AbortController();
  /** @type {Set<Socket>} */
  #hung = new Set();
  #sleep;

  /** @param {(ms: number, signal: AbortSignal) => Promise<unknown>} sleep */
  constructor(sleep) {
    this.#sleep = sleep;
  }

  /**
   * Waits, unless ended.
   * @param {number} ms
   * @throws {Ended}
   */
  async pause(ms) {
    const { signal } = this.#abort;
    /** @type {() => void} */
    let end = () => {};
    const ended = new Promise((_, reject) => {
      end = () => reject(new Ended());
      signal.addEventListener("abort", end);
    });
    try {
      await Promise.race([this.#sleep(ms, signal), ended]);
    } catch (error) {
      throw signal.aborted ? new Ended() : error;
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  /**
   * Keeps a socket open without an answer until its client leaves or `endAll` is called.
   * @param {Socket} socket
   */
  hang(socket) {
    this.#hung.add(socket);
    socket.once("close", () => this.#hung.delete(socket));
  }

  /** Ends every delay and closes every hung socket; later requests start afresh. */
  endAll() {
    this.#abort.abort();
    this.#abort = new AbortController();
    for (const socket of this.#hung) socket.destroy();
    this.#hung.clear();
  }
}
