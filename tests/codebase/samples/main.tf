terraform {
  required_version = ">= 1.0"
}

variable "region" {
  type    = string
  default = "eu"
}

resource "aws_instance" "web" {
  ami = var.ami

  network {
    id = 1
  }
}

module "network" {
  source = "./network"
}

output "ip" {
  value = aws_instance.web.ip
}

locals {
  name = "shop"
}
