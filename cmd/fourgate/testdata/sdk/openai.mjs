// Puts one call of the official OpenAI SDK through the proxy, whole and streamed, and
// prints what the application would see as one JSON line each.
import OpenAI from 'openai';

const [base, model, ...modes] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: process.env.CALLER_KEY ?? 'none' });
const messages = [{ role: 'user', content: 'hello' }];

const show = (mode, seen) => console.log(JSON.stringify({ mode, ...seen }));

const failure = (err) => ({
  error: err.constructor.name,
  status: err.status ?? null,
  code: err.code ?? null,
  type: err.type ?? null,
  requestID: err.requestID ?? null,
  message: String(err.message),
});

for (const mode of modes) {
  let text = '';
  let finish = null;
  try {
    if (mode === 'whole') {
      const { data, response } = await client.chat.completions.create({ model, messages }).withResponse();
      show(mode, {
        text: data.choices[0].message.content,
        finish: data.choices[0].finish_reason,
        model: data.model,
        requestID: response.headers.get('x-request-id'),
      });
    } else {
      const stream = await client.chat.completions.create({ model, messages, stream: true });
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta?.content ?? '';
        finish = chunk.choices[0]?.finish_reason ?? finish;
      }
      show(mode, { text, finish });
    }
  } catch (err) {
    show(mode, { text, finish, ...failure(err) });
  }
}
