# The configuration that `fourgate demo` runs on. Three simulated channels serve one
# model; their faults come from a script in place of real outages.
server {
  listen        = env("DEMO_LISTEN")
  debug_headers = true
}

provider "amber" {
  base_url = env("DEMO_AMBER_URL")
  auth     = "bearer"
  key "main" { secret = env("DEMO_KEY") }
}

provider "birch" {
  base_url = env("DEMO_BIRCH_URL")
  auth     = "bearer"
  key "main" { secret = env("DEMO_KEY") }
}

provider "cedar" {
  base_url = env("DEMO_CEDAR_URL")
  auth     = "bearer"
  key "main" { secret = env("DEMO_KEY") }
}

route_group "demo" {
  models    = ["demo-model"]
  endpoints = ["openai.chat", "anthropic.messages"]
  strategy  = "failover"

  channel "amber" { provider = provider.amber }
  channel "birch" { provider = provider.birch }
  channel "cedar" { provider = provider.cedar }

  budget {
    attempts = 4
    deadline = "30s"
    backoff  = { base = "100ms", max = "1s" }
  }
  breaker {
    # Higher than in production: the point is to see the faults.
    mode     = "consecutive"
    failures = 1000
    open_for = "5s"
  }
}

policy {
  # A dead key is tried again soon, so that the demo goes round.
  params = { cool_key_fault_ms = 10000, cool_max_ms = 3000 }
}

ledger {
  store = "sqlite"
  path  = env("DEMO_LEDGER")
}
