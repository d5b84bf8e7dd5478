server {
  listen        = env("LISTEN")
  admin_listen  = "127.0.0.1:9001"
  max_body      = "8MiB"
  debug_headers = true
  drain_timeout = "10s"
}

classifier "openai" {
  module  = "builtin:openai"
  timeout = "2ms"
  memory  = "4MiB"
}

classifier "house" {
  module = "modules/house.wasm"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000001"
}

provider "openai" {
  base_url   = "https://api.openai.com/v1/"
  classifier = classifier.openai
  auth       = "bearer"
  key "main" { secret = env("OPENAI_API_KEY") }
  key "spare" { secret = file("secret.txt") }
  timeouts {
    connect = "1s"
    tls     = "3s"
    headers = "20s"
    gate    = "10s"
    on_gate = "fallback"
    idle    = "60s"
  }
  tls { server_name = "api.openai.com" }
}

provider "azure_east" {
  base_url   = env("AZURE_URL", "https://east.example.com/openai")
  classifier = classifier["house"]
  auth       = "api-key"
  key "main" { secret = env("AZURE_KEY", "fallback-key") }
  timeouts {
    headers = "20s"
  }
}

route_group "gpt-4o" {
  models       = ["gpt-4o-2024-08-06"]
  endpoints    = ["openai.chat"]
  strategy     = "cost"
  max_hops     = 2
  commit       = "complete"
  complete_max = "1MiB"
  keep_alive   = "15s"
  on_gate      = "commit"
  rpm          = env("RPM")

  channel "openai" {
    provider = provider.openai
    cost     = { input = 2.50, output = 10.00, cached_input = 1.25 }
    priority = 1
    weight   = 3
    labels   = { region = "us", tier = "gold" }
  }
  channel "azure-east" {
    provider   = provider.azure_east
    send_as    = { "gpt-4o-2024-08-06" = "prod-4o" }
    serves     = "gpt-4o-2024-08-06"
    answers_as = ["gpt-4o"]
    cost       = { input = 2.50, output = 10.00 }
  }

  budget {
    attempts   = 4
    per_route  = 2
    deadline   = "90s"
    min_useful = "3s"
    backoff    = { base = "100ms", max = "2s" }
  }
  breaker {
    mode             = "consecutive"
    failures         = 5
    open_for         = "30s"
    half_open_probes = 3
  }
  health_check {
    interval = "5s"
    timeout  = "1s"
    path     = "/v1/models"
  }
  policy {
    timeout = "30ms"
    params  = { retry_on_network = false, extra = "x" }
  }
}

route_group "gpt-4.1" {
  models    = ["gpt-4.1-2025-04-14"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
  budget { deadline = "70s" }
  policy {
    profile  = "kunavo"
    timezone = "UTC"
    shadow {
      profile = "ccrelay"
      timeout = "40ms"
    }
  }
}

caller "team-a" {
  key_sha256 = "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08"
  groups     = [route_group.gpt-4o, route_group["gpt-4.1"]]
  routing    = "ordered"
  rpm        = 300
  budget {
    attempts = 2
    deadline = "45s"
  }
}

policy {
  paths    = ["policies", "/etc/fourgate/policies"]
  query    = "data.house.decision"
  timeout  = "20ms"
  timezone = "Europe/Berlin"
  params = {
    retry_on_network = true
    limits           = { hops = 3, ratio = 0.5 }
    classes          = ["rate_limited", null]
  }
  shadow {
    query    = "data.house.next"
    timezone = "America/New_York"
    params   = { limits = { hops = 4 } }
  }
}

retry_budget {
  ratio = 0.2
  floor = 0
  cap   = 50
}

ledger {
  store      = "sqlite"
  path       = "data/ledger.db"
  durability = "sync"
  retention  = "24h"
}

state {
  backend   = "redis"
  url       = "rediss://cache.example.com:6380/1"
  prefix    = "house:"
  on_outage = "refuse"
  breakers  = true
}
