// A DNS server for one name.

import { createSocket } from "node:dgram";
import { once } from "node:events";

export interface Dns extends AsyncDisposable {
  readonly address: string;
  /** The addresses of every name. */
  ips: string[];
}

export async function startDns(...ips: string[]): Promise<Dns> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const dns: Dns = {
    address: `127.0.0.1:${String(socket.address().port)}`,
    ips,
    [Symbol.asyncDispose]: () => new Promise((resolve) => { socket.close(() => { resolve(); }); }),
  };
  socket.on("message", (query, peer) => {
    const end = query.indexOf(0, 12) + 5;
    const question = query.subarray(12, end);
    const isA = query.readUInt16BE(end - 4) === 1;
    const records = isA ? dns.ips.map((ip) => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ip.split(".").map(Number)])) : [];
    const head = Buffer.from([...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, records.length, 0, 0, 0, 0]);
    socket.send(Buffer.concat([head, question, ...records]), peer.port, peer.address);
  });
  return dns;
}
