route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  strategy  = "cheapest"
  channel "openai" { provider = provider.openai }
}
