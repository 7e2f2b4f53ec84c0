// Runs the tool loop of Anthropic's TypeScript client: threads.mjs BASE STREAM QUESTION prints the cities of its calls and the answer.
import { createRequire } from "node:module";

const require = createRequire(`${process.env.CLIENTS}/package.json`);
const Anthropic = require("@anthropic-ai/sdk").default;
const { betaTool } = require("@anthropic-ai/sdk/helpers/beta/json-schema");
const [base, streams, question] = process.argv.slice(2);

const ran = [];
const tool = betaTool({
  name: "get_weather",
  description: "The weather of a city.",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  run: ({ city }) => {
    ran.push(city);
    return `${city}: 4 degrees`;
  },
});
const client = new Anthropic({ baseURL: base, apiKey: "none", maxRetries: 0 });
const runner = client.beta.messages.toolRunner({
  max_iterations: 9, model: "m", max_tokens: 99, tools: [tool], messages: [{ role: "user", content: question }], stream: JSON.parse(streams),
});
let last;
for await (const turn of runner) last = JSON.parse(streams) ? await turn.finalMessage() : turn;
const text = last.content.filter((block) => block.type === "text").map((block) => block.text).join("");
console.log(JSON.stringify([ran, text]));
