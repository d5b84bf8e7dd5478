# Three channels of one model and a small retry budget, for SDKs that repeat what failed.
# The floor earns a token in 1000 s: that is none within a test, and a test that puts the
# clock forward earns what it wants within the deadline, for which a failure is remembered.
server {
  listen        = env("LISTEN")
  admin_listen  = env("ADMIN_LISTEN")
  drain_timeout = "5s"
}

provider "a" {
  base_url = env("A_URL")
  auth     = "bearer"
  key "main" { secret = env("KEY") }
}

provider "b" {
  base_url = env("B_URL")
  auth     = "x-api-key"
  key "main" { secret = env("KEY") }
}

provider "c" {
  base_url = env("C_URL")
  auth     = "x-goog-api-key"
  key "main" { secret = env("KEY") }
}

route_group "m" {
  models    = ["model-1", "model-2"]
  endpoints = ["openai.chat", "openai.responses", "anthropic.messages", "gemini.generate"]
  strategy  = "failover"
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" { provider = provider.c }
  budget {
    attempts = 3
    deadline = "1h"
    backoff  = { base = "1ms", max = "2ms" }
  }
  breaker { mode = "off" }
}

# It is alone, so that the whole budget is its own.
caller "app" {
  key_sha256 = "ea15307d5014284174761b842f9352a857a93a3b2df3f23b69ac21d8b24ee805" # key-of-app
  groups     = [route_group.m]
}

retry_budget {
  ratio = 1
  floor = 0.001
  cap   = 12
}

ledger {
  store = "sqlite"
  path  = env("LEDGER")
}
