// Puts one call of the official Google Gen AI SDK through the proxy, whole and streamed, and
// prints what the application would see as one JSON line each.
import { GoogleGenAI } from '@google/genai';

const [base, model, ...modes] = process.argv.slice(2);
const client = new GoogleGenAI({ apiKey: process.env.CALLER_KEY ?? 'none', httpOptions: { baseUrl: base } });
const request = { model, contents: 'hello' };

const show = (mode, seen) => console.log(JSON.stringify({ mode, ...seen }));

const failure = (err) => ({
  error: err.constructor.name,
  status: err.status ?? null,
  message: String(err.message),
});

for (const mode of modes) {
  let text = '';
  let finish = null;
  try {
    if (mode === 'whole') {
      const data = await client.models.generateContent(request);
      show(mode, {
        text: data.text,
        finish: data.candidates[0].finishReason,
        model: data.modelVersion,
        requestID: data.sdkHttpResponse?.headers?.['x-request-id'] ?? null,
      });
    } else {
      const stream = await client.models.generateContentStream(request);
      for await (const chunk of stream) {
        text += chunk.text ?? '';
        finish = chunk.candidates?.[0]?.finishReason ?? finish;
      }
      show(mode, { text, finish });
    }
  } catch (err) {
    show(mode, { text, finish, ...failure(err) });
  }
}
