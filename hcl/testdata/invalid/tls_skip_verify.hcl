provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
  tls {
    insecure_skip_verify = true # ERROR: Unknown argument
    server_name          = "https://a.internal" # ERROR: Not a host name
    ca_file              = "no-such.pem" # ERROR: File cannot be read
  }
}
route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
}
