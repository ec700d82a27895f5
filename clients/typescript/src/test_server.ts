// A real `weir` for integration tests, on a clock that the test moves.

import type { ChildProcessWithoutNullStreams } from "node:child_process";
import type { Socket } from "node:net";

import { WeirError } from "./errors.js";

const START_MS = 30_000;
const ANSWER_MS = 10_000;
/** What of the log of a `weir` that does not start is told. */
const LONGEST_LOG = 4096;

/** A `weir` that `serve` has started. It ends with its test, also if the test is killed. */
export interface Server extends AsyncDisposable {
  /** Where it listens: the target of a client. */
  readonly address: string;
  /** Moves the clock of all limits, and resolves when it stands there. */
  advance(seconds: number): Promise<void>;
  /** Ends it. */
  close(): Promise<void>;
}

/**
 * Starts a `weir` that is there with the file `config`, on a free port. Nothing is downloaded.
 *
 * Its states are in memory, and its clock stands still until `advance` moves it, so a limit of an hour is tested in milliseconds.
 * Rejects with a WeirError that has what `weir` says if it does not start.
 */
export async function serve(binary: string, config: string): Promise<Server> {
  // Loaded here, as the fakes need no Node.
  const { spawn } = await import("node:child_process");
  const options = ["serve", "--test-clock", "--log", "error", "--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  const child = spawn(binary, options, { stdio: ["pipe", "pipe", "pipe"] });
  const program = new Program(child);
  const first = await program.line(START_MS);
  if (!first.startsWith("serving ")) {
    await program.end("SIGKILL");
    throw new WeirError(`weir has not started: ${program.log.trim() || first || "it says nothing"}`);
  }
  return {
    address: first.slice("serving ".length),
    advance: async (seconds) => {
      const answer = await program.ask(`advance ${String(seconds)}\n`);
      if (answer !== "ok") throw new WeirError(answer || "the server does not answer");
    },
    close: () => program.end(),
    [Symbol.asyncDispose]: () => program.end(),
  };
}

/** A program that answers lines by lines. */
class Program {
  /** The begin of its log. */
  log = "";
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<void>;
  readonly #waiting: ((line: string) => void)[] = [];
  #rest = "";
  #over = false;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        this.#over = true;
        for (const wake of this.#waiting.splice(0)) wake("");
        resolve();
      };
      child.once("close", end);
      child.once("error", (error) => {
        this.log = error.message;
        end();
      });
    });
    child.stdin.on("error", () => undefined);
    child.stdout.setEncoding("utf8").on("data", (text: string) => { this.#read(text); });
    child.stderr.setEncoding("utf8").on("data", (text: string) => { this.log = (this.log + text).slice(0, LONGEST_LOG); });
    // A test that forgets to close it ends all the same, and so does the server.
    child.unref();
    for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as Partial<Socket>).unref?.();
  }

  /** Returns the next line; an empty one if none comes. */
  line(timeoutMs: number): Promise<string> {
    if (this.#over) return Promise.resolve("");
    return new Promise((resolve) => {
      const timer = setTimeout(() => { resolve(""); }, timeoutMs);
      this.#waiting.push((line) => {
        clearTimeout(timer);
        resolve(line);
      });
    });
  }

  ask(line: string): Promise<string> {
    const answer = this.line(ANSWER_MS);
    this.#child.stdin.write(line);
    return answer;
  }

  /** Closes its stdin, with which it ends. */
  async end(signal?: NodeJS.Signals): Promise<void> {
    this.#child.stdin.end();
    if (signal !== undefined) this.#child.kill(signal);
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), ANSWER_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    // Other lines are those of a log.
    for (const line of lines) if (/^(serving |ok$|error )/.test(line)) this.#waiting.shift()?.(line);
  }
}
