// A timeout that holds, whatever the server and the network do, and the signal of the caller.

import { OutageError } from "./errors.js";

/** An answer that arrived while the process was stalled is read within this time after the timer. */
const GRACE_MS = 10;

/** How a call ends. What comes second changes nothing. @internal */
export interface Ends<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: unknown) => void;
  /** Whether it has ended: it need not be sent. */
  readonly ended: () => boolean;
}

/**
 * Runs a call. `start` returns what cancels it. Rejects with OutageError if it is late, or with the reason of the signal.
 * @internal
 */
export function timed<Answer>(timeoutMs: number, signal: AbortSignal | undefined, start: (ends: Ends<Answer>) => () => void): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    let ended = false;
    let timer = setTimeout(() => {
      timer = setTimeout(expire, GRACE_MS);
    }, timeoutMs);
    let cancel = (): void => undefined;

    function end(finish: () => void): void {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      finish();
    }
    function giveUp(reason: unknown): void {
      end(() => {
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason of a signal may be anything
        reject(reason);
        cancel();
      });
    }
    function expire(): void {
      giveUp(new OutageError("DEADLINE_EXCEEDED", `no answer within ${String(timeoutMs)} ms`));
    }
    function abort(): void {
      giveUp(signal?.reason);
    }

    signal?.addEventListener("abort", abort, { once: true });
    cancel = start({
      resolve: (answer) => { end(() => { resolve(answer); }); },
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a token function may throw anything
      reject: (reason) => { end(() => { reject(reason); }); },
      ended: () => ended,
    });
  });
}
