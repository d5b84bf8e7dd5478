server {
  max_body = "lots"
}
server {
}
