/**
 * Runs in the network of a host and takes over a socket that listens outside: anyone who connects to that is connected to a
 * server in here. A host's network leads nowhere, and sockets stay in the network that they were opened in.
 */
import { connect, type Server, type Socket } from 'node:net';

const [, , host = '', port = ''] = process.argv;

process.on('disconnect', () => process.exit());
process.on('message', (_message, server: Server) => {
  server.on('connection', (outside: Socket) => {
    const inside = connect({ host, port: Number(port) });
    const end = () => {
      outside.destroy();
      inside.destroy();
    };
    for (const socket of [outside, inside]) socket.setNoDelay(true).on('error', end).on('close', end);
    outside.pipe(inside).pipe(outside);
  });
  process.send?.('open');
});
