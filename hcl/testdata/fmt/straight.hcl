# Comments, blank lines and the order stay.
server {
  listen   = "127.0.0.1:8080"
  max_body = "8MiB" # of a request

  debug_headers = true
}
provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}
route_group "gpt-4o" {
  models = ["gpt-4o-2024-08-06", "gpt-4o-2024-11-20"]
  channel "openai" {
    provider = provider.openai
    cost     = { input = 2.5, output = 10 }
  }
}
