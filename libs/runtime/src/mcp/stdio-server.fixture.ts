// A program that serves a bridge over its own standard streams, as a harness would start one.
import { aBridge } from './bridge.fixture.ts';
import { serveMcpStdio } from './stdio.ts';

const { bridge } = aBridge();
await serveMcpStdio(bridge, process.stdin, process.stdout);
bridge.close();
