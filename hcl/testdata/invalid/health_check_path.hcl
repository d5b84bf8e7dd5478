provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
}

route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  health_check {
    path = "v1/models" # ERROR: Not a path
  }
  channel "a" { provider = provider.a }
}
