provider "a" {
  base_url = "http://a.internal"
  auth     = "none"
  tls { # ERROR: TLS settings without TLS
    server_name = "a.internal"
  }
}
route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
}
