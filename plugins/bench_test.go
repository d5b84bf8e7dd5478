//go:build unix

package plugins_test

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
)

// shortErrors are one error of about 300 bytes for each built-in classifier.
var shortErrors = map[string]engine.Evidence{
	"openai":    jsonError(429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-EXAMPLE on tokens per min (TPM): Limit 30000, Used 28450, Requested 3495. Please try again in 3.89s. Visit the account page to learn more about limits and how to raise them.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`),
	"anthropic": jsonError(429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit for your organization of 30,000 input tokens per minute. Reduce the prompt length or the maximum tokens requested, or try again later. You may also ask for an increase."},"request_id":"req_EXAMPLE"}`),
	"gemini":    jsonError(429, `{"error":{"code":429,"message":"You exceeded your current quota; see plan.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}`),
	"generic":   jsonError(503, `{"error":{"code":"service_unavailable","message":"The upstream of this gateway has answered with an error that it did not explain any further, and the gateway passes that on. The request can be sent again, or the support can be asked about it with the identifier that stands in the headers of this answer.","type":"server_error"}}`),
}

// reportCPU adds the processor time of the whole process per classification, garbage
// collection and helper goroutines included: wall time says little on a shared machine.
func reportCPU(b *testing.B, run func()) {
	before := cpuTime(b)
	run()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkClassify is one classification of a 300-byte JSON error: the whole of it,
// in an instance that is used again.
func BenchmarkClassify(b *testing.B) {
	all := builtins(b, openHost(b))
	for name, ev := range shortErrors {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			reportCPU(b, func() {
				for b.Loop() {
					if v := all[name].Classify(&ev); v.Class == engine.ClassUnknown {
						b.Fatal(v)
					}
				}
			})
		})
	}
}

func longError() engine.Evidence {
	return jsonError(400, `{"error":{"message":"`+string(bytes.Repeat([]byte("the prompt that was sent "), 4000))+`","code":"context_length_exceeded"}}`)
}

// BenchmarkClassifyLarge is a 100 kB body whose error code stands at its very end.
func BenchmarkClassifyLarge(b *testing.B) {
	all := builtins(b, openHost(b))
	ev := longError()
	for name, c := range all {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			reportCPU(b, func() {
				for b.Loop() {
					if v := c.Classify(&ev); v.Class != engine.ClassBadRequest {
						b.Fatal(v)
					}
				}
			})
		})
	}
}

// BenchmarkLoad opens a host and compiles every built-in classifier.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		host, err := plugins.Open(b.Context(), plugins.Options{})
		if err != nil {
			b.Fatal(err)
		}
		builtins(b, host)
		if err := host.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
