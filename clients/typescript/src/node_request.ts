// The life of a request on Node: whether its caller is still there, and the answer to a denial.

import type { ServerResponse } from "node:http";

import type { Denial } from "./middleware.js";

/** Returns a signal that aborts when the caller leaves before the answer is sent, and the end of watching. @internal */
export function watchCaller(response: ServerResponse): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  const leave = (): void => {
    if (!response.writableFinished) controller.abort();
  };
  if (response.destroyed) controller.abort();
  response.once("close", leave);
  return { signal: controller.signal, stop: () => response.removeListener("close", leave) };
}

/** Writes headers that stay on every answer, also on error pages. @internal */
export function setHeaders(response: ServerResponse, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

/** Answers a request that is denied. Its body stays unread. @internal */
export function deny(response: ServerResponse, { status, headers, text }: Denial): void {
  setHeaders(response, headers);
  response.statusCode = status;
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  response.end(`${text}\n`);
}
