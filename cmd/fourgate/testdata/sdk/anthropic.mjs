// Puts one call of the official Anthropic SDK through the proxy, whole and streamed, and
// prints what the application would see as one JSON line each.
import Anthropic from '@anthropic-ai/sdk';

const [base, model, ...modes] = process.argv.slice(2);
const client = new Anthropic({ baseURL: base, apiKey: process.env.CALLER_KEY ?? 'none' });
const request = { model, max_tokens: 64, messages: [{ role: 'user', content: 'hello' }] };

const show = (mode, seen) => console.log(JSON.stringify({ mode, ...seen }));

const failure = (err) => ({
  error: err.constructor.name,
  status: err.status ?? null,
  type: err.type ?? null,
  requestID: err.requestID ?? null,
  message: String(err.message),
});

for (const mode of modes) {
  let text = '';
  let finish = null;
  try {
    if (mode === 'whole') {
      const { data, response } = await client.messages.create(request).withResponse();
      show(mode, {
        text: data.content.map((part) => part.text ?? '').join(''),
        finish: data.stop_reason,
        model: data.model,
        requestID: response.headers.get('request-id'),
      });
    } else {
      const stream = await client.messages.create({ ...request, stream: true });
      for await (const event of stream) {
        if (event.type === 'content_block_delta') text += event.delta.text ?? '';
        if (event.type === 'message_delta') finish = event.delta.stop_reason ?? finish;
      }
      show(mode, { text, finish });
    }
  } catch (err) {
    show(mode, { text, finish, ...failure(err) });
  }
}
