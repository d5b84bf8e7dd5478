# Kunavo: three resellers of one model, the cheapest first. A caller's mistake (400,
# 404) is never hidden by another route, and an unpaid account (402) is the caller's to
# see: the profile says so.
#
# As it stands the file runs against "fourgate sim -listen 127.0.0.1:9101".

server {
  listen       = env("KUNAVO_LISTEN", "127.0.0.1:8080")
  admin_listen = env("KUNAVO_ADMIN_LISTEN", "127.0.0.1:8081")
}

classifier "openai" {
  module = "builtin:openai"
}

provider "a" {
  base_url   = env("KUNAVO_A_URL", "http://127.0.0.1:9101/a/v1")
  classifier = classifier.openai
  key "main" { secret = env("KUNAVO_A_KEY", "sim-key") }
  timeouts {
    headers = "240s" # a reasoning model thinks before a whole answer
    gate    = "30s"  # a stream that says nothing for longer commits: slow is no error
  }
}

provider "b" {
  base_url   = env("KUNAVO_B_URL", "http://127.0.0.1:9101/b/v1")
  classifier = classifier.openai
  key "main" { secret = env("KUNAVO_B_KEY", "sim-key") }
  timeouts {
    headers = "240s"
    gate    = "30s"
  }
}

provider "c" {
  base_url   = env("KUNAVO_C_URL", "http://127.0.0.1:9101/c/v1")
  classifier = classifier.openai
  key "main" { secret = env("KUNAVO_C_KEY", "sim-key") }
  timeouts {
    headers = "240s"
    gate    = "30s"
  }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  strategy  = "cost"
  max_hops  = 3

  channel "a" {
    provider = provider.a
    cost     = { input = 1.80, output = 7.20 }
  }
  channel "b" {
    provider = provider.b
    cost     = { input = 2.20, output = 8.80 }
  }
  channel "c" {
    provider = provider.c
    cost     = { input = 2.50, output = 10.00, cached_input = 1.25 }
  }

  budget {
    attempts  = 3
    per_route = 1
    deadline  = "10m" # room for a second route after one that stayed silent for 240s
  }
  breaker {
    mode     = "window"
    failures = 3
    window   = "5m"
    open_for = "60s"
  }
}

policy {
  profile = "kunavo"
}

ledger {
  path = env("KUNAVO_LEDGER", "kunavo.db")
}
