// The tools of evenhand in the Vercel AI SDK, called by hand: no agent and no model key.
//
//   node compare.mjs                 over HTTP: a server at EVENHAND_URL (evenhand serve)
//   node compare.mjs --stdio         over stdio: starts `evenhand mcp` itself
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Stdio } from "@ai-sdk/mcp/mcp-stdio";

const { EVENHAND_URL = "http://127.0.0.1:8321", EVENHAND_TOKEN } = process.env;
const headers = EVENHAND_TOKEN ? { Authorization: `Bearer ${EVENHAND_TOKEN}` } : {};

const client = await createMCPClient({
  transport: process.argv.includes("--stdio")
    ? new Stdio({ command: "evenhand", args: ["mcp"], env: process.env })
    : { type: "http", url: `${EVENHAND_URL}/mcp`, headers },
});
try {
  const tools = await client.tools();
  console.log("tools:", Object.keys(tools).join(", "));

  const { structuredContent: result } = await tools.pairwiseCompare.execute({
    prompt: "What is 7 times 8?",
    responseA: "54",
    responseB: "56",
    criteria: ["accuracy"],
  });
  if (!result.success) console.log(`no verdict (${result.error.kind}): ${result.error.message}`);
  else if (result.metadata.outcome === "inconsistent") console.log("undecided: the verdict flipped with the order");
  else console.log(`winner: ${result.winner}, confidence: ${result.confidence}`);
} finally {
  await client.close();
}
