# Three channels that serve every endpoint, for the tests of streams and SDKs.
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
    idle    = "400ms"
  }
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
  models = ["model-1"]
  endpoints = [
    "openai.chat", "openai.responses", "openai.completions", "openai.embeddings", "openai.images", "openai.audio",
    "anthropic.messages", "gemini.generate",
  ]
  strategy = "failover"
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

route_group "held" {
  models = ["model-held"]
  endpoints = [
    "openai.chat", "openai.responses", "openai.completions", "openai.embeddings", "openai.images", "openai.audio",
    "anthropic.messages", "gemini.generate",
  ]
  strategy = "failover"
  commit   = "complete"
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

route_group "renamed" {
  models = ["model-renamed"]
  endpoints = [
    "openai.chat", "openai.responses", "openai.completions", "openai.embeddings", "openai.images", "openai.audio",
    "anthropic.messages", "gemini.generate",
  ]
  strategy = "failover"
  channel "a" {
    provider   = provider.a
    send_as    = { "model-renamed" = "deployment 1" }
    serves     = "model-renamed"
    answers_as = ["deployment 1"]
  }
  channel "b" {
    provider   = provider.b
    send_as    = { "model-renamed" = "deployment 1" }
    serves     = "model-renamed"
    answers_as = ["deployment 1"]
  }
  channel "c" {
    provider   = provider.c
    send_as    = { "model-renamed" = "deployment 1" }
    serves     = "model-renamed"
    answers_as = ["deployment 1"]
  }
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
  store      = "sqlite"
  path       = env("LEDGER")
  durability = "sync" # so that a test finds a record at once
}
