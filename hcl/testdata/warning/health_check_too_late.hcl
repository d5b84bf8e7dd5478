provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
}

route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  breaker { open_for = "10s" }
  health_check {
    interval = "10s" # WARNING: Health check comes too late
  }
  channel "a" { provider = provider.a }
}
