// Runs the tool loop of the AI SDK on one question: loops.mjs BASE_URL QUESTION. The key is in OPENAI_API_KEY.
//
// Its provider `openai` speaks Responses and has the server keep each answer: what came before goes back as `item_reference`, without its content.
// Prints the answer, or the library's own words for its failure, and then exits with 1.
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.AGENTS + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { isStepCount, jsonSchema, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const [base, prompt] = process.argv.slice(2);

const inputs = (...names) =>
  jsonSchema({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: names, additionalProperties: false });
const tools = {
  read_file: tool({ description: "Returns the text of a file.", inputSchema: inputs("path"), execute: ({ path }) => readFileSync(path, "utf8") }),
  write_file: tool({
    description: "Appends a text to a file, so that a second call shows.",
    inputSchema: inputs("path", "text"),
    execute: ({ path, text }) => (appendFileSync(path, text), "written"),
  }),
};
const model = createOpenAI({ baseURL: base })("scripted");
const { stream } = streamText({ model, prompt, tools, stopWhen: isStepCount(9), onError: () => {} });
let text = "";
for await (const part of stream) {
  if (part.type === "text-delta") text += part.text;
  if (part.type === "error") {
    const { name, message } = part.error;
    console.error(name ? `${name}: ${message}` : JSON.stringify(part.error));
    process.exit(1);
  }
}
console.log(text);
