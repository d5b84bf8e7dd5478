provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
}

route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  breaker { mode = "off" }
  health_check { # WARNING: Nothing to check
  }
  channel "a" { provider = provider.a }
}
