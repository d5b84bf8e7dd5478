# StudyHub: two providers with several keys each. Failures fall into four families, and
# each has its own effect, as the profile has it: a key fault cools the key, a
# provider's transient failure counts against the channel, a bad model is evicted on its
# channel, and everything else changes nothing.
#
# As it stands the file runs against "fourgate sim -listen 127.0.0.1:9101".

server {
  listen       = env("STUDYHUB_LISTEN", "127.0.0.1:8080")
  admin_listen = env("STUDYHUB_ADMIN_LISTEN", "127.0.0.1:8081")
}

classifier "openai" {
  module = "builtin:openai"
}

provider "a" {
  base_url   = env("STUDYHUB_A_URL", "http://127.0.0.1:9101/a/v1")
  classifier = classifier.openai
  key "one" { secret = env("STUDYHUB_A_KEY_1", "sim-key-1") }
  key "two" { secret = env("STUDYHUB_A_KEY_2", "sim-key-2") }
  key "three" { secret = env("STUDYHUB_A_KEY_3", "sim-key-3") }
  timeouts {
    headers = "20s"
  }
}

provider "b" {
  base_url   = env("STUDYHUB_B_URL", "http://127.0.0.1:9101/b/v1")
  classifier = classifier.openai
  key "one" { secret = env("STUDYHUB_B_KEY_1", "sim-key-1") }
  key "two" { secret = env("STUDYHUB_B_KEY_2", "sim-key-2") }
  timeouts {
    headers = "20s"
  }
}

route_group "gpt-4o-mini" {
  models    = ["gpt-4o-mini-2024-07-18"]
  endpoints = ["openai.chat"]
  strategy  = "failover"

  channel "a" {
    provider = provider.a
    priority = 1
    cost     = { input = 0.15, output = 0.60 }
  }
  channel "b" {
    provider = provider.b
    priority = 2
    cost     = { input = 0.15, output = 0.60 }
  }

  budget {
    attempts  = 4 # two keys on each of two channels
    per_route = 2
    deadline  = "60s"
  }
}

policy {
  profile = "studyhub"
}

ledger {
  path = env("STUDYHUB_LEDGER", "studyhub.db")
}
