package hcl

import "testing"

// Whoever switches the shared state off in an outage may have lost the backend's password
// with it.
func TestStateThatIsOffNeedsNoSecret(t *testing.T) {
	t.Parallel()
	const text = `state {
  backend = "redis"
  url     = env("REDIS_URL")
  ca_file = "gone.pem"
}
`
	f := func(value string, want int) {
		t.Helper()
		env := inMemory(map[string]string{"x.hcl": text})
		others := env.LookupEnv
		env.LookupEnv = func(name string) (string, bool) {
			if name == SharedStateSwitch {
				return value, value != ""
			}
			return others(name)
		}
		_, diags := Load("x.hcl", env)
		got := 0
		for _, d := range diags {
			if d.Line >= 3 {
				got++
			}
		}
		if got != want {
			t.Errorf("%s=%s: %d problems with the state, want %d:\n%s", SharedStateSwitch, value, got, want, picture(t, diags))
		}
	}
	f("off", 0)
	f("", 2)
	f("on", 2)
}
