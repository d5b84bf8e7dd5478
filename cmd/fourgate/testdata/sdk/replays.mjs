// Puts calls of SDKs that repeat what failed through the proxy, and prints what the
// application sees of each, and what passed between SDK and proxy, as one JSON line.
//
//	node replays.mjs BASE MODEL KEY SDK FIRST COUNT [once] [salted] [deaf] [lost]
//
// Call number n asks "question n", for n from FIRST on, one call after the other. The SDKs
// are unchanged and have their default settings; Google's repeats what failed only if it is
// told to, and is. Only time is compressed: what they wait between two requests passes ten
// thousand times faster. Their limits on one request are above 5 minutes, and stay.
//
//	once    the SDK is told not to repeat anything
//	salted  no two bodies are the same, so that no request is a replay
//	deaf    X-Should-Retry doesn't reach the SDK, as behind a proxy that drops it
//	lost    the second request of each call is lost before it reaches the proxy
const [base, model, key, sdk, first, count, ...flags] = process.argv.slice(2);
const once = flags.includes('once');
const salted = flags.includes('salted');
const deaf = flags.includes('deaf');
const lost = flags.includes('lost');

const { setTimeout: sleep, fetch: send } = globalThis;
globalThis.setTimeout = (then, ms, ...args) => sleep(then, ms < 300_000 ? ms / 10_000 : ms, ...args);

globalThis.AI_SDK_LOG_WARNINGS = false; // they go to stdout

let exchanges = [];
let salt = 0;

globalThis.fetch = async (url, init) => {
  const exchange = { number: new Headers(init.headers).get('x-stainless-retry-count') ?? '' };
  exchanges.push(exchange);
  if (lost && exchanges.length === 2) throw new TypeError('fetch failed');
  // Spaces behind a JSON value mean nothing, and make it another body.
  const body = salted ? init.body + ' '.repeat(++salt) : init.body;
  const answer = await send(url, { ...init, body });
  exchange.status = answer.status;
  exchange.shouldRetry = answer.headers.get('x-should-retry') ?? '';
  exchange.requestID = answer.headers.get('x-request-id');
  if (!deaf) return answer;
  const headers = new Headers(answer.headers);
  headers.delete('x-should-retry');
  return new Response(answer.body, { status: answer.status, headers });
};

// The setting that the manual recommends.
const retries = once ? { maxRetries: 0 } : {};

const connect = {
  'ai-openai': async () => {
    const { generateText } = await import('ai');
    const { createOpenAI } = await import('@ai-sdk/openai');
    const provider = createOpenAI({ baseURL: `${base}/v1`, apiKey: key });
    return async (prompt) => (await generateText({ model: provider(model), prompt, ...retries })).text;
  },
  'ai-anthropic': async () => {
    const { generateText } = await import('ai');
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    const provider = createAnthropic({ baseURL: `${base}/v1`, apiKey: key });
    return async (prompt) => (await generateText({ model: provider(model), prompt, ...retries })).text;
  },
  langchain: async () => {
    const { ChatOpenAI } = await import('@langchain/openai');
    const chat = new ChatOpenAI({ model, apiKey: key, configuration: { baseURL: `${base}/v1` }, ...retries });
    return async (prompt) => (await chat.invoke(prompt)).text;
  },
  genai: async () => {
    const { GoogleGenAI } = await import('@google/genai');
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: base, ...(once ? {} : { retryOptions: {} }) } });
    return async (prompt) => (await client.models.generateContent({ model, contents: prompt })).text;
  },
  openai: async () => {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, ...retries });
    return async (prompt) => {
      const messages = [{ role: 'user', content: prompt }];
      return (await client.chat.completions.create({ model, messages })).choices[0].message.content;
    };
  },
};

const ask = await connect[sdk]();
for (let n = Number(first); n < Number(first) + Number(count); n++) {
  exchanges = [];
  const seen = {};
  try {
    seen.text = await ask(`question ${n}`);
  } catch (err) {
    // The AI SDK wraps the last error in one that says how often it has tried.
    const cause = err.lastError ?? err;
    Object.assign(seen, { error: err.name, status: cause.status ?? cause.statusCode ?? 0, message: cause.message });
    seen.kind = cause.constructor.name;
  }
  console.log(JSON.stringify({ ...seen, exchanges }));
}
