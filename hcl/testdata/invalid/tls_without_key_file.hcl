server {
  tls { # ERROR: Missing argument
    cert_file = "../valid/secret.txt"
  }
}
provider "a" {
  base_url = "https://a.example.com"
  auth     = "none"
}
route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
}
