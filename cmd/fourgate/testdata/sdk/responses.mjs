// Puts one call of the official OpenAI SDK to the Responses API through the proxy, whole
// and streamed, and prints what the application would see as one JSON line each.
import OpenAI from 'openai';

const [base, model, ...modes] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: process.env.CALLER_KEY ?? 'none' });
const request = { model, input: 'hello', store: false };

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
      const { data, response } = await client.responses.create(request).withResponse();
      show(mode, {
        text: data.output_text,
        finish: data.status,
        model: data.model,
        requestID: response.headers.get('x-request-id'),
      });
    } else {
      const stream = await client.responses.create({ ...request, stream: true });
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') text += event.delta;
        if (event.type === 'response.completed') finish = event.response.status;
      }
      show(mode, { text, finish });
    }
  } catch (err) {
    show(mode, { text, finish, ...failure(err) });
  }
}
