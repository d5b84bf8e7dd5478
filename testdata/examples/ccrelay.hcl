# CC Relay: one coding assistant over two relays and the vendor itself. Five failures in
# a row set a relay aside for 30 s; then three probes must succeed. Each answer says in
# its headers which channel gave it. What isn't a relay's fault is the caller's to see.
#
# As it stands the file runs against "fourgate sim -listen 127.0.0.1:9101".

server {
  listen        = env("CCRELAY_LISTEN", "127.0.0.1:8080")
  admin_listen  = env("CCRELAY_ADMIN_LISTEN", "127.0.0.1:8081")
  debug_headers = true # X-Fourgate-Channel, -Strategy and -Attempts
}

classifier "anthropic" {
  module = "builtin:anthropic"
}

provider "a" {
  base_url   = env("CCRELAY_A_URL", "http://127.0.0.1:9101/a/v1")
  classifier = classifier.anthropic
  auth       = "bearer"
  key "main" { secret = env("CCRELAY_A_KEY", "sim-key") }
  timeouts {
    headers = "60s"
  }
}

provider "b" {
  base_url   = env("CCRELAY_B_URL", "http://127.0.0.1:9101/b/v1")
  classifier = classifier.anthropic
  auth       = "bearer"
  key "main" { secret = env("CCRELAY_B_KEY", "sim-key") }
  timeouts {
    headers = "60s"
  }
}

provider "c" {
  base_url   = env("CCRELAY_C_URL", "http://127.0.0.1:9101/c/v1")
  classifier = classifier.anthropic
  auth       = "x-api-key"
  key "main" { secret = env("CCRELAY_C_KEY", "sim-key") }
  timeouts {
    headers = "60s"
  }
}

route_group "claude" {
  models    = ["claude-sonnet-4-20250514"]
  endpoints = ["anthropic.messages"]
  strategy  = "failover"

  channel "a" {
    provider = provider.a
    priority = 1
  }
  channel "b" {
    provider = provider.b
    priority = 2
  }
  channel "c" {
    provider = provider.c
    priority = 3
  }

  budget {
    attempts  = 3
    per_route = 1
    deadline  = "5m"
  }
  breaker {
    mode             = "consecutive"
    failures         = 5
    open_for         = "30s"
    half_open_probes = 3
  }
}

policy {
  profile = "ccrelay"
}

ledger {
  path = env("CCRELAY_LEDGER", "ccrelay.db")
}
