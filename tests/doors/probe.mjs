// What the AI SDK's MCP client sees, as it sees it: the tools, and the results of CALLS.
// It borrows the packages of the example, which lies elsewhere.
import { createRequire } from "node:module";

const example = createRequire(process.env.EXAMPLE);
const { createMCPClient } = await import(example.resolve("@ai-sdk/mcp"));
const { Experimental_StdioMCPTransport: Stdio } = await import(example.resolve("@ai-sdk/mcp/mcp-stdio"));

const client = await createMCPClient({
  transport:
    process.argv[2] === "stdio"
      ? new Stdio({ command: "evenhand", args: ["mcp"], env: process.env })
      : { type: "http", url: `${process.env.EVENHAND_URL}/mcp` },
});
const { tools } = await client.listTools();
const results = [];
for (const call of JSON.parse(process.env.CALLS)) {
  results.push(await client.callTool({ name: "pairwiseCompare", arguments: call }));
}
await client.close();
console.log(JSON.stringify({ tools, results }));
