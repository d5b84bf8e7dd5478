provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
}

route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  health_check {
    interval = "10ms" # ERROR: Duration out of range
  }
  channel "a" { provider = provider.a }
}
