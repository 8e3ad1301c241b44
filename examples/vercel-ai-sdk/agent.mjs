// An agent of the Vercel AI SDK that asks evenhand which of two answers is better.
// Needs OPENAI_API_KEY, and a server at EVENHAND_URL (evenhand serve).
import { createMCPClient } from "@ai-sdk/mcp";
import { openai } from "@ai-sdk/openai";
import { generateText, isStepCount } from "ai";

const { EVENHAND_URL = "http://127.0.0.1:8321", EVENHAND_TOKEN, AGENT_MODEL = "gpt-5-mini" } = process.env;
const headers = EVENHAND_TOKEN ? { Authorization: `Bearer ${EVENHAND_TOKEN}` } : {};

const client = await createMCPClient({ transport: { type: "http", url: `${EVENHAND_URL}/mcp`, headers } });
try {
  const { text } = await generateText({
    model: openai(AGENT_MODEL),
    tools: await client.tools(),
    stopWhen: isStepCount(5),
    instructions: "Compare by the tool, never by yourself. An inconsistent outcome is undecided, not a tie.",
    prompt: "Which answers 'What is 7 times 8?' better by accuracy: A '54' or B '56'?",
  });
  console.log(text);
} finally {
  await client.close();
}
