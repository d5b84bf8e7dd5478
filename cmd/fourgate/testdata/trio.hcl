# Three channels of one model, for the end-to-end tests.
server {
  listen        = env("LISTEN")
  admin_listen  = env("ADMIN_LISTEN")
  debug_headers = true
  drain_timeout = "5s"
}

provider "a" {
  base_url = env("A_URL")
  auth     = "bearer"
  key "main" { secret = env("KEY") }
  timeouts {
    headers = "20s"
    gate    = "5s"
    idle    = "5s"
  }
}

provider "b" {
  base_url = env("B_URL")
  auth     = "x-api-key"
  key "main" { secret = env("KEY") }
}

provider "c" {
  base_url = env("C_URL")
  auth     = "api-key"
  key "main" { secret = env("KEY") }
}

route_group "m" {
  models    = ["model-1"]
  endpoints = ["openai.chat", "anthropic.messages"]
  strategy  = "failover"
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" { provider = provider.c }
  budget {
    attempts = 3
    deadline = "300s"
    backoff  = { base = "10ms", max = "50ms" }
  }
  breaker {
    mode     = "consecutive"
    failures = 1000
    open_for = "1s"
  }
}

ledger {
  store = "sqlite"
  path  = env("LEDGER")
}
